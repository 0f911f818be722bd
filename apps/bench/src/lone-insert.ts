import postgres from 'postgres';
import { median } from './load.ts';

const insertsMin = 2_000;

/** The median time of one prepared insert after the other on one connection of the gateway's driver: what a commit costs. */
export async function loneInsertMs(databaseUrl: string, merchantId: number): Promise<number> {
  const sql = postgres(databaseUrl, { max: 1 });
  const times: number[] = [];
  try {
    for (let number = 0; number < insertsMin; number += 1) {
      const startedAt = performance.now();
      await insert(sql, merchantId, number);
      times.push(performance.now() - startedAt);
    }
  } finally {
    await sql.end();
  }
  return median(times);
}

function insert(sql: postgres.Sql, merchantId: number, number: number) {
  return sql`insert into orders values (${merchantId}, ${number + 2 ** 50}, 'Kx7dQ2mZp0LrT9vYc4HsW8nBf3GjUe6A', 'UN_PAID',
    ${new Date()}, ${`lone-${number}`}, '1249.50', 'EUR', ${'Two walnut shelves and one reading lamp'}, 'PHYSICAL_GOODS',
    ${'Noor van der Linden'}, ${'noor.vanderlinden@example.com'}, ${'+31 20 555 0142'}, ${'Lindengracht 88'},
    ${'Second floor'}, ${'Amsterdam'}, ${'Noord-Holland'}, ${'Netherlands'}, ${'1015 KK'}, ${'made-by-the-shop-7d1c'},
    ${'https://shop.example.com/checkout/return?cart=5521'}) on conflict do nothing returning service_order_id`;
}
