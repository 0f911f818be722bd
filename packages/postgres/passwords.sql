-- Sets the passwords of the login roles of the operators and the gateway, from the environment of psql:
--   OWNER_PASSWORD=... GATEWAY_PASSWORD=... psql --file packages/postgres/passwords.sql postgres://...
\getenv owner_password OWNER_PASSWORD
\getenv gateway_password GATEWAY_PASSWORD
alter role order_gateway_owner password :'owner_password';
alter role order_gateway password :'gateway_password';
