/** The texts of a form, by name. They are read on submit, so that nothing else holds a password. */
export function readForm(form: HTMLFormElement | null): Record<string, string> {
  const texts: Record<string, string> = {};
  if (form) for (const [name, value] of new FormData(form)) if (typeof value === "string") texts[name] = value;
  return texts;
}
