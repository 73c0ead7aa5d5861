/* Values of secrets that are bound to hosts, for the hub: what their principal may use now, and as
 * it can stand in a line of HTTP. They are redacted before the hub has them. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "guard/gate/internal.h"
#include "guard/secret/secrets.h"
#include "hub/core/hub.h"
#include "op/network.h"

/* One that the hub asks for. */
struct bind_one {
	struct bind_read *of;
	char name[SECRETS_NAME_MAX + 1];
	struct net_rule hosts[NW_SECRET_HOSTS_MAX];
	struct secret *value; /* owned */
	struct buf trust;
};

struct bind_read {
	struct gate *gate;
	hub_secrets_cb on_read;
	void *arg;
	uv_timer_t timer; /* answers where nothing is read */
	size_t n, waiting; /* waiting: for so many */
	struct hub_secret *p;
	struct bind_one all[];
};

static void bind_on_freed(uv_handle_t *h)
{
	struct bind_read *r = h->data;

	free(r->p);
	free(r);
}

static void bind_end(struct bind_read *r)
{
	r->on_read(r->arg, r->p);
	for (size_t i = 0; i < r->n; i++) {
		secret_free(r->all[i].value);
		buf_fini(&r->all[i].trust);
	}
	uv_close((uv_handle_t *)&r->timer, bind_on_freed);
}

/* Without the line end that a file or a command may have put behind it. */
static int bind_value(struct bind_one *o, struct str value, struct str *ret, struct err *e)
{
	value = secrets_text(value);
	if (value.n < NW_SECRET_MIN || value.n > NW_SECRET_MAX)
		return err_set(e, ERR_INVALID, "a secret with hosts has %d to %d bytes, not so %s",
			       NW_SECRET_MIN, NW_SECRET_MAX, o->name);
	for (size_t i = 0; i < value.n; i++) {
		unsigned char c = (unsigned char)value.p[i];

		if (c < ' ' || c == 0x7f || (c == ' ' && (i == 0 || i == value.n - 1)))
			return err_set(e, ERR_INVALID,
				       "secret %s can't stand in a line of HTTP: it has line ends, "
				       "control characters, or blanks at its ends",
				       o->name);
	}
	o->value = secret_new(value, e);
	if (!o->value)
		return -1;
	*ret = secret_expose(o->value, "for requests to its hosts");
	return 0;
}

static void bind_on_read(void *data, struct secret *const *values, const struct err *err)
{
	struct bind_one *o = data;
	struct bind_read *r = o->of;
	struct hub_secret *to = &r->p[o - r->all];
	const struct guard *guard = &r->gate->guard;
	struct str value;

	if (err) {
		to->err = *err;
	} else {
		value = secret_expose(values[0], "for requests to its hosts");
		if (guard->gave_secret(guard->data, str_of(o->name), value, &to->err) == 0)
			bind_value(o, value, &to->value, &to->err);
	}
	if (--r->waiting == 0)
		bind_end(r);
}

static int bind_trust(struct bind_one *o, struct str path, struct err *e)
{
	autoclose int fd = -1;
	char name[CONFIG_TEXT_MAX * 4 + 1];
	struct stat st;
	char *at;

	snprintf(name, sizeof(name), "%.*s", STR_ARG(path));
	fd = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, errno, "open the certificates (ca) of secret %s", o->name);
	if (!S_ISREG(st.st_mode) || st.st_size <= 0 || st.st_size > NW_SECRET_TRUST_MAX)
		return err_set(e, ERR_INVALID,
			       "the certificates (ca) of secret %s: a file of 1 to %d bytes",
			       o->name, NW_SECRET_TRUST_MAX);
	at = buf_reserve(&o->trust, (size_t)st.st_size, e);
	if (!at)
		return -1;
	if (fd_read(fd, at, (size_t)st.st_size) < 0)
		return err_sys(e, errno, "read the certificates (ca) of secret %s", o->name);
	buf_advance(&o->trust, (size_t)st.st_size);
	return 0;
}

static int bind_begin(struct bind_one *o, struct hub_secret *to, struct str who, bool by_operator,
		      struct err *e)
{
	struct gate *g = o->of->gate;
	const struct config_file *f = config_file(g->config);
	const struct config_secret *s = config_secret_bound(f, str_of(o->name));
	struct str name = str_of(o->name);
	struct gate_names by;

	if (who.n)
		gate_names_of(g, who, &by);
	if (who.n && !gate_secret_allows(f, &by, by_operator, name))
		return err_set(e, ERR_DENIED, "%.*s may not use the secret %s", STR_ARG(who),
			       o->name);
	if (!s)
		return err_set(e, ERR_SECRET_NOT_FOUND, "the secret %s has no hosts", o->name);
	if (network_secret_hosts(s, o->hosts, &to->n_hosts, e) < 0 ||
	    (s->ca.p && bind_trust(o, s->ca, e) < 0))
		return -1;
	to->hosts = o->hosts;
	to->trust = buf_str(&o->trust);
	return secrets_read_start(g->guard.secrets, g->loop, &name, 1, bind_on_read, o, e) ? 0 : -1;
}

static void bind_on_timer(uv_timer_t *t)
{
	struct bind_read *r = t->data;

	if (--r->waiting == 0)
		bind_end(r);
}

static void bind_read_start(void *data, struct str who, bool by_operator, const struct str *names,
			    size_t n, hub_secrets_cb on_read, void *arg)
{
	struct gate *g = data;
	struct bind_read *r = calloc(1, sizeof(*r) + n * sizeof(r->all[0]));

	if (!r || !(r->p = calloc(n, sizeof(*r->p))))
		abort(); /* out of memory: no callback could report it */
	r->gate = g;
	r->on_read = on_read;
	r->arg = arg;
	r->n = n;
	r->waiting = 1;
	uv_timer_init(g->loop, &r->timer);
	r->timer.data = r;
	uv_timer_start(&r->timer, bind_on_timer, 0, 0);
	for (size_t i = 0; i < n; i++) {
		struct bind_one *o = &r->all[i];

		o->of = r;
		o->trust = BUF_INIT(NW_SECRET_TRUST_MAX);
		r->p[i].err = ERR_INIT;
		snprintf(o->name, sizeof(o->name), "%.*s", STR_ARG(names[i]));
		if (bind_begin(o, &r->p[i], who, by_operator, &r->p[i].err) == 0)
			r->waiting++;
	}
}

void gate_bind_open(struct gate *g)
{
	g->to_hosts = (struct hub_secrets){ bind_read_start, g };
	if (g->hub)
		hub_sandboxes_secrets_from(hub_sandboxes(g->hub), &g->to_hosts);
}
