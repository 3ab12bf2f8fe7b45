const special: Readonly<Record<string, string>> = { "logout.all": "Signed out everywhere" };

/** An action of the audit log, to be read before "by the account": `webhooks.changed` is "Webhooks changed". */
export function actionWords(action: string): string {
  const words = action.replace(/[._]/g, " ").replace(/^api\b/, "API");
  return special[action] ?? (words[0] ?? "").toUpperCase() + words.slice(1);
}
