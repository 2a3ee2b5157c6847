// What this browser keeps of a reader's choices. Nothing here decides what a page shows: the address does.
export const kept = (name, values, otherwise) => (values.includes(localStorage.getItem(name)) ? localStorage.getItem(name) : otherwise);
export const keep = (name, value) => localStorage.setItem(name, value);
