/** Lines on a 16 by 16 grid. */
const paths = {
  overview: "M2 13h12M4 11V7M8 11V3M12 11V6",
  events: "M2 4h12M2 8h12M2 12h8",
  webhooks: "M6.5 9.5l3-3M7 4.5l1.5-1.5a3 3 0 0 1 4.5 4.5L11.5 9M9 11.5l-1.500 1.500a3 3 0 0 1-4.500-4.500L4.500 7",
  replays: "M13 8a5 5 0 1 1-1.500-3.500M13 2v3h-3",
  inbox: "M2 9l2-6h8l2 6v4H2zM2 9h3.500l1 2h3l1-2H14",
  keys: "M10.500 8.500a3 3 0 1 0-2.800-2L2.500 11.500V14H5v-1.500h1.500V11l1.500-1.500a3 3 0 0 0 2.500-1z",
  plan: "M2 4h12v8H2zM2 7h12M4 10h3",
  more: "M3 8h.01M8 8h.01M13 8h.01",
  copy: "M6 6h7v7H6zM10 6V3H3v7h3",
  ring: "M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6z",
  check: "M3 8.500l3 3 7-7",
  cross: "M4 4l8 8M12 4l-8 8",
  wait: "M8 4v4l2.500 2M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0z",
  up: "M8 13V3M4 7l4-4 4 4",
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM11 11l3 3",
  back: "M10 3L5 8l5 5",
  next: "M6 3l5 5-5 5",
  plus: "M8 3v10M3 8h10",
  trash: "M3 4h10M6 4V2.500h4V4M4.500 4l.5 9.500h6l.5-9.500",
  eye: "M1.500 8S4 3.500 8 3.500 14.500 8 14.500 8 12 12.500 8 12.500 1.500 8 1.500 8zM8 10a2 2 0 1 0 0-4 2 2 0 0 0 0 4z",
  exit: "M6 3H3v10h3M8 8h6M11.500 5.500L14 8l-2.500 2.500",
  docs: "M4 2h6l3 3v9H4zM6 8h5M6 11h5",
  warn: "M8 2.500l6 11H2zM8 6.500v3.500M8 12h.01",
  servers: "M2 3h12v4H2zM2 9h12v4H2zM5 5h.01M5 11h.01",
} as const;

export type IconName = keyof typeof paths;

/** Always next to a word, or on a button that has its own name, so it says nothing itself. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      stroke-width={name === "more" ? 2.4 : 1.5}
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      <path d={paths[name]} />
    </svg>
  );
}
