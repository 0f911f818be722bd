import { getTableColumns, sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';
import { newOrder, type OrderFields } from './new-order.js';
import { orders } from './order-table.js';

/** Inserts one order: unprepared as Drizzle's first page shows it, or by a statement with a name. Ten connections, the default. */
export function openInsert(prepared: boolean): (fields: OrderFields) => Promise<ReturnType<typeof newOrder>> {
  const db = drizzle({ client: postgres(process.env.DATABASE_URL ?? '', { max: 10 }) });
  const values = (order: ReturnType<typeof newOrder>, fields: OrderFields) => ({
    ...order,
    ...fields,
    order_amount: fields.order_amount.toFixed(2),
    customer_address_line2: fields.customer_address_line2 ?? '',
  });
  if (!prepared) {
    return async (fields) => {
      const order = newOrder();
      await db
        .insert(orders)
        .values(values(order, fields))
        .onConflictDoNothing()
        .returning({ id: orders.serviceOrderId });
      return order;
    };
  }
  const names = Object.keys(getTableColumns(orders));
  const statement = db
    .insert(orders)
    .values(Object.fromEntries(names.map((name) => [name, sql.placeholder(name)])) as never)
    .onConflictDoNothing()
    .returning({ id: orders.serviceOrderId })
    .prepare('insert_order');
  return async (fields) => {
    const order = newOrder();
    await statement.execute(values(order, fields));
    return order;
  };
}
