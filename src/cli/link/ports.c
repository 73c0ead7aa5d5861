#include "cli/link/ports.h"

#include <stdio.h>
#include <string.h>

/* A number from 1 to 65535 and nothing else, of n characters. */
static bool read_port(const char *p, size_t n, uint16_t *ret)
{
	unsigned long port = 0;

	for (size_t i = 0; i < n; i++) {
		if (p[i] < '0' || p[i] > '9' || i == 5)
			return false;
		port = port * 10 + (unsigned long)(p[i] - '0');
	}
	*ret = (uint16_t)port;
	return port > 0 && port <= 65535;
}

int ports_read(const char *text, struct port_words *ret, struct err *e)
{
	const char *colon = strchr(text, ':'), *guest = colon ? colon + 1 : text;

	*ret = (struct port_words){ 0 };
	if (!read_port(guest, strlen(guest), &ret->guest) ||
	    (colon && !read_port(text, (size_t)(colon - text), &ret->host)))
		return err_set(e, ERR_INVALID,
			       "%.40s: a port is a number from 1 to 65535, or two: HOST:PORT",
			       text);
	return 0;
}

int ports_forward(struct hub_link *l, const char *sandbox, const struct port_words *p,
		  struct json_doc **ret, struct err *e)
{
	char path[256], body[64];

	snprintf(body, sizeof(body), "{\"guest_port\":%u,\"host_port\":%u}", p->guest, p->host);
	if (hub_link_path(path, sizeof(path), sandbox, "/forward", e) < 0)
		return -1;
	return hub_link_ask(l, "POST", path, str_of(body), ret, e);
}
