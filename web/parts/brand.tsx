/** The mark and the name, linked to the first view. */
export function Brand({ href = "/" }: { href?: string }) {
  return (
    <a class="brand" href={href}>
      <svg viewBox="0 0 16 16" aria-hidden="true">
        <rect width="16" height="16" rx="4" fill="var(--accent)" />
        <path
          d="M3.5 8h6M7 4.500 10.500 8 7 11.500M12.500 4.500v7"
          stroke="var(--accent-ink)"
          stroke-width="1.6"
          fill="none"
        />
      </svg>
      Postrider
    </a>
  );
}
