// The health check of the image: whether the gateway in this container responds. It asks the admin port, which is the same with
// TLS and whatever BASE_URL is.
const response = await fetch(`http://127.0.0.1:${process.env.ADMIN_PORT || 9464}/metrics`).catch(() => undefined);
process.exitCode = response?.ok ? 0 : 1;
