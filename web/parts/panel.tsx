import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

/** A framed part of a page with its name; `actions` are at the end of its head. */
export function Panel({
  title,
  actions,
  isFlush = false,
  children,
}: {
  title: string;
  actions?: ComponentChildren;
  /** Its content extends to the frame, as rows do. */
  isFlush?: boolean;
  children: ComponentChildren;
}) {
  const id = useId();
  return (
    <section class="panel" aria-labelledby={id}>
      <header>
        <h2 id={id}>{title}</h2>
        {actions && <div class="end buttons">{actions}</div>}
      </header>
      {isFlush ? children : <div class="body">{children}</div>}
    </section>
  );
}
