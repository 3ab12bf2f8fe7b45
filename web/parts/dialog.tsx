import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

/** The browser's own modal dialog: it keeps the focus inside, and Escape closes it. */
export function Dialog({ title, onClose, children }: { title: string; onClose(): void; children: ComponentChildren }) {
  const element = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog ref={element} aria-labelledby={titleId} onClose={onClose}>
      <div class="inside">
        <h2 id={titleId}>{title}</h2>
        {children}
      </div>
    </dialog>
  );
}
