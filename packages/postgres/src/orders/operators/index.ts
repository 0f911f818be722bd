export { countErasableOrders, type ErasureTarget, eraseOrders } from './erase-orders.ts';
export { failRefund } from './fail-refund.ts';
export { exportOrders, importOrders } from './order-archive.ts';
export { findOrderHistories, type OrderHistory } from './order-history.ts';
export { listRefusedPayments } from './refused-payments.ts';
export { releasePayment } from './release-payment.ts';
export { type ScannedOrder, type StoredEvent, scanEvents, scanOrders } from './scan.ts';
