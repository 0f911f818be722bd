import { type Brand, type BrandStore, brandFieldNames, noBrand } from '@order-gateway/domain/accounts';
import { eq, type SQL, sql } from 'drizzle-orm';
import { accounts, brands } from '../schema.ts';
import type { Run } from './admin-connection.ts';
import { type Actor, runRecorded } from './audit-log.ts';

/** A merchant's brand as JSON without the image; `null` if it has no brand. */
export const brandOfMerchant: SQL<Brand | null> = sql<Brand | null>`(
  select jsonb_build_object(${sql.join(
    brandFieldNames.map((name) => sql`${sql.raw(`'${name}'`)}, ${brands[name]}`),
    sql`, `,
  )}, 'logo', case when ${brands.logoDigest} is not null then jsonb_build_object(
    'digest', ${brands.logoDigest}, 'type', ${brands.logoType}, 'width', ${brands.logoWidth}, 'height', ${brands.logoHeight}
  ) end) from ${brands} where ${brands.merchantId} = ${accounts.id}
)`;

/** Returns the store of brands. The statement that makes a change also records it in the audit log. */
export function brandsOn(run: Run, actor: Actor): BrandStore {
  return {
    findBrand: (clientId) =>
      run(async (db) => {
        const [found] = await db
          .select({ brand: brandOfMerchant })
          .from(accounts)
          .where(sql`${eq(accounts.clientId, clientId)} and ${accounts.kind} = 'merchant'`);
        return found && (found.brand ?? noBrand);
      }),

    updateBrand: (clientId, { texts, logo }) =>
      run(async (db) => {
        const values: Record<string, SQL> = {};
        for (const [name, text] of Object.entries(texts)) values[name] = sql`nullif(${text}, '')`;
        if (logo !== undefined) {
          values.logo = sql`${logo?.image ?? null}::bytea`;
          values.logo_digest = sql`${logo?.digest ?? null}::text`;
          values.logo_type = sql`${logo?.type ?? null}::text`;
          values.logo_width = sql`${logo?.width ?? null}::integer`;
          values.logo_height = sql`${logo?.height ?? null}::integer`;
        }
        const names = Object.keys(values).map((name) => sql.identifier(name));
        const listed = (parts: readonly SQL[]) => sql.join([sql``, ...parts], sql`, `);
        const changed = await runRecorded(
          db,
          sql`
            insert into ${brands} (merchant_id${listed(names.map((name) => sql`${name}`))})
            select ${accounts.id}${listed(Object.values(values))} from ${accounts}
            where ${accounts.clientId} = ${clientId} and ${accounts.kind} = 'merchant'
            on conflict (merchant_id) do update set merchant_id = excluded.merchant_id${listed(
              names.map((name) => sql`${name} = excluded.${name}`),
            )}
            returning merchant_id`,
          {
            actor,
            name: 'brand',
            clientId,
            details: { ...texts, ...(logo !== undefined && { logo: logo?.digest ?? null }) },
          },
        );
        return changed.length === 1;
      }),
  };
}
