import "./table.css";
import type { ComponentChildren } from "preact";

/** A table that becomes rows with named values on a phone: its cells say their column's name. */
export function Table({ columns, children }: { columns: readonly string[]; children: ComponentChildren }) {
  return (
    <table class="op-table">
      <thead>
        <tr>
          {columns.map((name) => (
            <th key={name} scope="col">
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  );
}
