// SPDX-License-Identifier: MIT
/* The pages over HTTP, by libmicrohttpd: three paths, loopback only, nothing is changed by a request. */
#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include "web/view.h"

#define CONNECTIONS_MAX 32
#define IDLE_S		15

/* web/page.S: web/page.html as it is. */
extern const char web_page[], web_page_end[];

struct web {
	web_fill *fill;
	void *arg;
};

/* Whether a Host header names this machine's loopback. Without one it is HTTP/1.0, which no browser speaks. */
static bool local(const char *host)
{
	static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};

	if (!host)
		return true;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		size_t n = strlen(names[i]);

		if (!strncmp(host, names[i], n) && (!host[n] || host[n] == ':'))
			return true;
	}
	return false;
}

static enum MHD_Result respond(struct MHD_Connection *c, unsigned status, const char *type, void *body, size_t len,
			       enum MHD_ResponseMemoryMode mode)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(len, body, mode);
	enum MHD_Result ok;

	if (!r)
		return MHD_NO;
	MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	/* The page needs nothing from elsewhere, and nobody frames it. */
	MHD_add_response_header(r, "Content-Security-Policy",
				"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; "
				"frame-ancestors 'none'");
	MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
	ok = MHD_queue_response(c, status, r);
	MHD_destroy_response(r);
	return ok;
}

static enum MHD_Result say(struct MHD_Connection *c, unsigned status, const char *line)
{
	return respond(c, status, "text/plain; charset=utf-8", (void *)line, strlen(line), MHD_RESPMEM_PERSISTENT);
}

static enum MHD_Result picture(const struct web *w, struct MHD_Connection *c, void (*write)(const struct web_view *, FILE *),
			       const char *type)
{
	struct web_view v = {.rtt_us = WEB_UNKNOWN};
	char *body = NULL;
	size_t len = 0;
	FILE *to = NULL;
	int err = w->fill(&v, w->arg);

	if (!err)
		to = open_memstream(&body, &len);
	if (to) {
		write(&v, to);
		err = fclose(to);
	}
	web_view_free(&v);
	if (!to || err) {
		free(body);
		return say(c, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory\n");
	}
	return respond(c, MHD_HTTP_OK, type, body, len, MHD_RESPMEM_MUST_FREE);
}

static enum MHD_Result answer(void *arg, struct MHD_Connection *c, const char *url, const char *method, const char *version,
			      const char *upload, size_t *upload_size, void **state)
{
	const char *host = MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);

	(void)version;
	(void)upload;
	(void)upload_size;
	(void)state;
	if (strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD))
		return say(c, MHD_HTTP_METHOD_NOT_ALLOWED, "this page is only read: GET or HEAD\n");
	if (!local(host))
		return say(c, MHD_HTTP_FORBIDDEN, "ask by the name localhost: other names are refused\n");
	if (!strcmp(url, "/"))
		return respond(c, MHD_HTTP_OK, "text/html; charset=utf-8", (void *)web_page, web_page_end - web_page,
			       MHD_RESPMEM_PERSISTENT);
	if (!strcmp(url, "/metrics"))
		return picture(arg, c, web_prometheus, "text/plain; version=0.0.4; charset=utf-8");
	if (!strcmp(url, "/view.json"))
		return picture(arg, c, web_json, "application/json");
	return say(c, MHD_HTTP_NOT_FOUND, "there are /, /metrics and /view.json\n");
}

int web_serve(uint16_t port, web_fill *fill, void *arg, char why[RGPU_WHY_MAX])
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct web *w = malloc(sizeof(*w));
	struct MHD_Daemon *d;

	if (!w)
		return rgpu_why(why, -ENOMEM, "no memory for the web page");
	*w = (struct web){fill, arg};
	errno = 0;
	d = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL, port, NULL, NULL, answer, w, MHD_OPTION_SOCK_ADDR,
			     &at, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
			     (unsigned)IDLE_S, MHD_OPTION_END);
	if (!d) {
		int err = errno ? -errno : -EADDRINUSE;

		free(w);
		return rgpu_why(why, err, "the web page cannot be served on 127.0.0.1:%u: %s; choose another port or turn it off",
				port, strerror(-err));
	}
	return MHD_get_daemon_info(d, MHD_DAEMON_INFO_BIND_PORT)->port;
}
