/* The page as a part of the hub: its routes, and the clock of its log-ins. */
#include <stdlib.h>

#include "base/mem.h"
#include "door/page/internal.h"

enum { SWEEP_MS = 30 * 1000 };

#define VIEW(path_)                                                                                \
	{                                                                                          \
		.path = path_, .methods = HTTP_GET | HTTP_HEAD, .open = true, .run = page_show,    \
		.doc = "A view of the page.",                                                      \
	}

/* Views have no data of the hub, so they are open. */
static const struct http_route rows[] = {
	VIEW("/"),
	VIEW("/login"),
	VIEW("/inbox"),
	VIEW("/c"),
	VIEW("/c/"),
	VIEW("/s"),
	VIEW("/s/"),
	VIEW("/m"),
	VIEW("/m/"),
	VIEW("/audit"),
	VIEW("/policy"),
	VIEW("/health"),
	VIEW("/settings"),
	{ .path = "/assets/",
	  .methods = HTTP_GET | HTTP_HEAD,
	  .open = true,
	  .run = page_send_file,
	  .doc = "A file of the page." },
	{ .path = "/session",
	  .methods = HTTP_POST,
	  .open = true,
	  .body_max = 4096,
	  .run = login_start,
	  .doc = "Logs a browser in with the code of a link." },
	{ .path = "/session",
	  .methods = HTTP_GET,
	  .run = login_show,
	  .doc = "Shows the log-in of this browser." },
	{ .path = "/session",
	  .methods = HTTP_DELETE,
	  .run = login_leave,
	  .doc = "Logs this browser out." },
	{ .path = "/session/links",
	  .methods = HTTP_POST,
	  .body_max = 4096,
	  .run = login_link,
	  .doc = "Makes a link that logs in one browser, once." },
	{ .path = "/sessions",
	  .methods = HTTP_GET,
	  .run = login_list,
	  .doc = "Lists the log-ins of browsers." },
	{ .path = "/sessions/{id}",
	  .methods = HTTP_DELETE,
	  .run = login_end_one,
	  .doc = "Ends a log-in." },
};

static void page_on_timer(uv_timer_t *t)
{
	login_sweep(t->data);
}

struct page *page_new(const struct page_options *o, struct err *e)
{
	struct page *p = calloc(1, sizeof(*p));

	if (!p)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	p->o = *o;
	uv_timer_init(o->loop, &p->timer);
	p->timer.data = p;
	uv_timer_start(&p->timer, page_on_timer, SWEEP_MS, SWEEP_MS);
	kept_read(p);
	return p;
}

static void page_on_closed(uv_handle_t *timer)
{
	struct page *p = timer->data;
	void (*on_closed)(void *arg) = p->on_closed;
	void *arg = p->on_closed_arg;
	struct err ignored;

	kept_write(p, &ignored);
	login_free_all(p);
	close_fd(&p->o.folder);
	free(p);
	on_closed(arg);
}

void page_close(struct page *p, void (*on_closed)(void *arg), void *arg)
{
	p->on_closed = on_closed;
	p->on_closed_arg = arg;
	uv_close((uv_handle_t *)&p->timer, page_on_closed);
}

struct http_routes page_routes(struct page *p)
{
	return (struct http_routes){ .p = rows, .n = ARRAY_LEN(rows), .owner = p };
}
