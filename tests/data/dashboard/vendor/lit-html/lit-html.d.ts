// Templates are not typed: what stands in one may be anything.
export const html: (strings: TemplateStringsArray, ...values: unknown[]) => any;
export const svg: typeof html;
export const nothing: any;
export const render: (template: unknown, place: Element) => unknown;
