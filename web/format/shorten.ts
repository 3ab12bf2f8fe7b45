export function shortenId(id: string): string {
  return id.length <= 16 ? id : `${id.slice(0, 8)}…${id.slice(-4)}`;
}

export function shortenUrl(url: string, max: number): string {
  return url.length <= max ? url : `${url.slice(0, max - 1)}…`;
}
