export const count = (n: number): string => String(n).replace(/\B(?=(\d{3})+$)/g, "\u202f");

export function percent(part: number, whole: number): string {
  return whole === 0 ? "–" : `${((100 * part) / whole).toFixed(1)} %`;
}

export const bytes = (n: number): string => (n < 1024 ? `${n} B` : `${(n / 1024).toFixed(1)} KB`);

export const naira = (kobo: number): string => `NGN ${(kobo / 100).toLocaleString("en", { minimumFractionDigits: 2 })}`;
