-- The database of the checkout and its roles. A superuser runs this once:
--   CHECKOUT_OWNER_PASSWORD=... CHECKOUT_PASSWORD=... psql --file apps/checkout/database.sql postgres://...
-- Each migration as the owner gives order_gateway_checkout its privileges (grants.sql). The roles are:
--   order_gateway_checkout_owner  migrates, and runs `payments`
--   order_gateway_checkout        runs the checkout, with MIGRATE=off
\getenv owner_password CHECKOUT_OWNER_PASSWORD
\getenv password CHECKOUT_PASSWORD
create role order_gateway_checkout_owner login password :'owner_password';
create role order_gateway_checkout login password :'password';
create database checkout owner order_gateway_checkout_owner;
revoke connect, temporary on database checkout from public;
grant connect on database checkout to order_gateway_checkout;
