// The health check of the image, which tests whether the gateway in this container responds. It uses the admin port,
// because that depends neither on TLS nor on BASE_URL.
const response = await fetch(`http://127.0.0.1:${process.env.ADMIN_PORT || 9464}/metrics`).catch(() => undefined);
process.exitCode = response?.ok ? 0 : 1;
