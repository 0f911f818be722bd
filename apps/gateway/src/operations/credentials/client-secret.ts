import { formatTime } from '@order-gateway/domain/orders/order';

/** The form of a client secret's id. */
export const secretIdForm = /^[1-9]\d{0,14}$/;

/** A client secret as the API returns it, with its value only if that is new. */
export function secretResponse(
  { id, createdAt, endsAt = null }: { readonly id: number; readonly createdAt: Date; readonly endsAt?: Date | null },
  newSecret?: string,
) {
  return {
    id: `${id}`,
    created_at: formatTime(createdAt.getTime()),
    ends_at: endsAt === null ? undefined : formatTime(endsAt.getTime()),
    client_secret: newSecret,
  };
}
