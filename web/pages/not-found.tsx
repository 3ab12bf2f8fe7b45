import { PageHead } from "../parts/page.tsx";

export function NotFoundPage() {
  return <PageHead title="Not found" />;
}
