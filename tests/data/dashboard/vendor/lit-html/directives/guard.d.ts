export const guard: (dependencies: unknown[], template: () => unknown) => any;
