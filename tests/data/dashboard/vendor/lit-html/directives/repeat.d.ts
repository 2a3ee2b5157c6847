export const repeat: <T>(items: Iterable<T>, key: (item: T) => unknown, template: (item: T, index: number) => unknown) => any;
