/** Makes room in a map by dropping the entry that was inserted first. */
export function forgetOldest<Key>(map: Map<Key, unknown>): void {
  const oldest = map.keys().next();
  if (!oldest.done) map.delete(oldest.value);
}
