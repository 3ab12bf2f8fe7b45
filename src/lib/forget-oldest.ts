/** Makes room in a map that keeps its entries in the order in which they came. */
export function forgetOldest<Key>(map: Map<Key, unknown>): void {
  const oldest = map.keys().next();
  if (!oldest.done) map.delete(oldest.value);
}
