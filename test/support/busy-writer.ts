import { Database } from "bun:sqlite";

/**
 * A process that never stops writing: each commit moves an amount from one table to the other, on pages all over the
 * file, which grows and shrinks; now and then it checkpoints the log. Its argument says where, and it reports when it has
 * begun.
 */
const client = new Database(process.argv[2] ?? "", { create: true });
client.run("pragma auto_vacuum = incremental");
client.run("pragma journal_mode = wal");
client.run("pragma synchronous = off");
client.run("pragma wal_autocheckpoint = 0");
client.run("pragma busy_timeout = 5000");
client.run("create table one (id integer primary key, amount integer, filler blob)");
client.run("create table other (id integer primary key, amount integer, filler blob)");
client.run("create table passing (id integer primary key, filler blob)");
const rows = 500;
for (let id = 0; id < rows; id++) {
  client.run("insert into one values (?1, 1000, zeroblob(900))", [id]);
  client.run("insert into other values (?1, 1000, zeroblob(900))", [id]);
}
const take = client.prepare("update one set amount = amount - ?2, filler = randomblob(900) where id = ?1");
const give = client.prepare("update other set amount = amount + ?2, filler = randomblob(900) where id = ?1");
const move = client.transaction((n: number) => {
  take.run((n * 7) % rows, n % 10);
  give.run((n * 13) % rows, n % 10);
  if (n % 50 < 25) client.run("insert into passing (filler) values (zeroblob(50000))");
  else client.run("delete from passing where id in (select id from passing limit 2)");
  if (n % 50 === 49) client.run("pragma incremental_vacuum(100)");
});
process.stdout.write("writing\n");
for (let n = 0; ; n++) {
  move(n);
  if (n % 40 === 0) client.run("pragma wal_checkpoint(passive)");
}
