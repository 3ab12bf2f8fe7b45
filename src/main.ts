export const x = Promise.resolve(1);
