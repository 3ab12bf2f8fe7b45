import type { ComponentChildren } from "preact";
import { Icon, type IconName } from "./icon.tsx";

/** A number of deliveries, linked to the list of exactly that many. */
export function Figure({
  name,
  tone,
  icon,
  href,
  value,
  children,
}: {
  name: string;
  tone: string;
  icon: IconName;
  href: string;
  value: ComponentChildren;
  children?: ComponentChildren;
}) {
  return (
    <div class="figure">
      <dt>
        <a class="spread" href={href}>
          <span class={`state ${tone}`}>
            <Icon name={icon} />
          </span>
          {name}
        </a>
      </dt>
      <dd>
        <strong>{value}</strong>
        {children !== undefined && <span class="more">{children}</span>}
      </dd>
    </div>
  );
}
