#include "hub/sandbox/internal.h"

#include <arpa/inet.h>
#include <stdlib.h>

#include "base/log.h"

enum { BACKLOG = 64 };

static struct forward **forward_find(struct hub_sandbox *l, uint16_t guest_port)
{
	struct forward **at = &l->forwards;

	while (*at && (*at)->guest_port != guest_port)
		at = &(*at)->next;
	return at;
}

/* ---- the end ------------------------------------------------------------------------------- */

static void on_closed(uv_handle_t *h)
{
	free(h->data);
}

static void forward_end(struct forward **at)
{
	struct forward *f = *at;

	*at = f->next;
	relays_end(f);
	f->hs->n_forwards--;
	f->hs->all->n_forwards--;
	f->hs = NULL;
	uv_close((uv_handle_t *)&f->listener, on_closed);
}

static void end_all(struct hub_sandbox *l)
{
	while (l->forwards)
		forward_end(&l->forwards);
}

void forwards_end(struct hub_sandbox *l)
{
	end_all(l);
	while (l->ports) {
		struct hub_sandbox_port *port = l->ports;

		hub_sandbox_port_give(port);
		port->on_end(port->arg);
	}
}

void forwards_end_of(struct hub_sandboxes *all, struct str owner)
{
	for (struct hub_sandbox *l = all->oldest; l; l = l->newer) {
		struct forward **at = &l->forwards;

		while (*at) {
			if (str_is(owner, (*at)->owner))
				forward_end(at);
			else
				at = &(*at)->next;
		}
	}
}

/* ---- listening ----------------------------------------------------------------------------- */

static void on_connection(uv_stream_t *listener, int status)
{
	struct forward *f = listener->data;

	if (status < 0)
		log_warn("port %u: %s", f->host_port, uv_strerror(status));
	else
		relay_start(f);
}

/* Its handle is open in any case. */
static int listen_at(struct forward *f, uint16_t port, struct err *e)
{
	const struct sockaddr_in at = { .sin_family = AF_INET,
					.sin_port = htons(port),
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in bound;
	int n = sizeof(bound);
	int rc = uv_tcp_bind(&f->listener, (const struct sockaddr *)&at, 0);

	if (rc == 0)
		rc = uv_listen((uv_stream_t *)&f->listener, BACKLOG, on_connection);
	if (rc == 0)
		rc = uv_tcp_getsockname(&f->listener, (struct sockaddr *)&bound, &n);
	if (rc < 0) {
		if (rc == UV_EADDRINUSE)
			return err_set(e, ERR_CONFLICT, "port %u of 127.0.0.1 is taken", port);
		if (rc == UV_EACCES)
			return err_set(e, ERR_DENIED, "port %u of 127.0.0.1 is for the system",
				       port);
		return err_sys(e, -rc, "listen on a port of 127.0.0.1");
	}
	f->host_port = ntohs(bound.sin_port);
	return 0;
}

static int open_port(struct hub_sandbox *l, uint16_t guest_port, uint16_t host_port, struct err *e)
{
	struct forward *f = calloc(1, sizeof(*f)), **at = &l->forwards;

	if (!f || uv_tcp_init(l->all->loop, &f->listener) < 0) {
		free(f);
		return err_set(e, ERR_LIMIT, "out of memory");
	}
	f->listener.data = f;
	f->guest_port = guest_port;
	f->hs = l;
	if (listen_at(f, host_port, e) < 0) {
		uv_close((uv_handle_t *)&f->listener, on_closed);
		return -1;
	}
	while (*at)
		at = &(*at)->next;
	*at = f;
	l->n_forwards++;
	l->all->n_forwards++;
	log_info("sandbox %s: port %u is port %u of 127.0.0.1", l->id, guest_port, f->host_port);
	return 0;
}

/* ---- for callers --------------------------------------------------------------------------- */

int forward_start(struct hub_sandbox *l, uint16_t guest_port, uint16_t host_port, struct str owner,
		  uint16_t *ret_port, struct err *e)
{
	struct forward **there = forward_find(l, guest_port);

	if (!hub_sandbox_sandbox(l, e))
		return -1;
	if (*there && host_port && (*there)->host_port != host_port)
		return err_set(e, ERR_CONFLICT, "port %u is forwarded from port %u already",
			       guest_port, (*there)->host_port);
	if (!*there && l->n_forwards >= FORWARDS_MAX)
		return err_set(e, ERR_LIMIT, "%d ports of sandbox %s are forwarded", FORWARDS_MAX,
			       l->id);
	if (!*there && l->all->n_forwards >= FORWARDS_ALL_MAX)
		return err_set(e, ERR_LIMIT, "%d ports of sandboxes are forwarded",
			       FORWARDS_ALL_MAX);
	if (!*there && open_port(l, guest_port, host_port, e) < 0)
		return -1;
	there = forward_find(l, guest_port);
	snprintf((*there)->owner, sizeof((*there)->owner), "%.*s", STR_ARG(owner));
	*ret_port = (*there)->host_port;
	return 0;
}

int forward_stop(struct hub_sandbox *l, uint16_t guest_port, struct err *e)
{
	struct forward **at = forward_find(l, guest_port);

	if (guest_port == 0)
		end_all(l);
	else if (*at)
		forward_end(at);
	else
		return err_set(e, ERR_INVALID, "guest_port: port %u is not forwarded", guest_port);
	return 0;
}

int hub_sandbox_port_take(struct hub_sandbox *l, struct hub_sandbox_port *port, struct err *e)
{
	if (l->n_ports >= FORWARD_CONNECTIONS_MAX || l->all->n_ports >= FORWARD_ALL_MAX)
		return err_set(e, ERR_LIMIT,
			       "%u connections to ports of sandbox %s are open, %u in all",
			       l->n_ports, l->id, l->all->n_ports);
	l->n_ports++;
	l->all->n_ports++;
	port->hs = l;
	port->prev = NULL;
	port->next = l->ports;
	if (port->next)
		port->next->prev = port;
	l->ports = port;
	hub_sandbox_busy(l, 1);
	return 0;
}

void hub_sandbox_port_give(struct hub_sandbox_port *port)
{
	struct hub_sandbox *l = take_ptr(port->hs);

	if (!l)
		return;
	if (port->prev)
		port->prev->next = port->next;
	else
		l->ports = port->next;
	if (port->next)
		port->next->prev = port->prev;
	l->n_ports--;
	l->all->n_ports--;
	hub_sandbox_busy(l, -1);
}

size_t forward_list(const struct hub_sandbox *l, struct forward_info ret[FORWARDS_MAX])
{
	size_t n = 0;

	for (const struct forward *f = l->forwards; f && n < FORWARDS_MAX; f = f->next)
		ret[n++] = (struct forward_info){ f->host_port, f->guest_port, f->n_relays,
						  f->relays_total };
	return n;
}
