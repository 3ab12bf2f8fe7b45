import { PageHead } from "../parts/page.tsx";

export function InboxPage() {
  return <PageHead title="Inbox" />;
}
