export const live: (value: unknown) => any;
