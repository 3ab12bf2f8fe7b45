import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** The head of a view. Its title is also the tab's, and gets the focus when a link or a key opens the view. */
export function PageHead({ title, children }: { title: string; children?: ComponentChildren }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} · Postrider`;
  }, [title]);
  useEffect(() => {
    if (document.activeElement === null || document.activeElement === document.body) heading.current?.focus();
  }, []);
  return (
    <div class="page-head">
      <h1 ref={heading} tabIndex={-1}>
        {title}
      </h1>
      {children}
    </div>
  );
}
