import "./table.css";
import type { ComponentChildren } from "preact";

/** A table whose rows become lists of named values on a phone: each cell carries its column's name. */
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
