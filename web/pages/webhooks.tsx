import { PageHead } from "../parts/page.tsx";

export function WebhooksPage() {
  return <PageHead title="Webhooks" />;
}
