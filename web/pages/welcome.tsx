import { PageHead } from "../parts/page.tsx";

export function WelcomePage() {
  return <PageHead title="Welcome" />;
}
