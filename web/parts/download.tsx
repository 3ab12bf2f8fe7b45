import { Button } from "./button.tsx";

/** Saves a text as a file. @param what names it for those who only hear the button */
export function Download({ text, file, what }: { text: string; file: string; what: string }) {
  function save(): void {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
    link.download = file;
    link.click();
    URL.revokeObjectURL(link.href);
  }
  return (
    <Button kind="quiet" onClick={save} aria-label={`Download ${what}`}>
      Download
    </Button>
  );
}
