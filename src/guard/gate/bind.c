/* Values of secrets that are bound to hosts, for the hub: what their principal may use now, and as
 * it can stand in a line of HTTP. They are redacted before the hub has them. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "guard/gate/internal.h"
#include "guard/gate/login.h"
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
	/* Of a log-in: */
	bool has_login;
	struct login login;
	struct nw_exchange urls[NW_EXCHANGES_MAX];
	struct net_rule url_hosts[NW_EXCHANGES_MAX];
	struct net_secret tokens[LOGIN_TOKENS_MAX + 1];
	char nothing[BOUND_PLACEHOLDER];
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

static void bind_one_fini(struct bind_one *o)
{
	secret_free(take_ptr(o->value));
	buf_fini(&o->trust);
	login_fini(&o->login);
}

/* ---- log-ins ------------------------------------------------------------------------------- */

static void bind_token(struct bind_one *o, struct hub_secret *to, struct str mark, struct str value,
		       uint32_t uses)
{
	bool to_hosts = uses & NW_IN_FIELDS;

	o->tokens[to->n_tokens++] = (struct net_secret){
		.name = str_of(o->name),
		.placeholder = mark,
		.value = value,
		.trust = to->trust,
		.hosts = to_hosts ? o->hosts : o->url_hosts,
		.n_hosts = to_hosts ? to->n_hosts : to->n_exchanges,
		.uses = uses,
	};
}

static void bind_tokens(struct bind_one *o, struct hub_secret *to)
{
	to->tokens = o->tokens;
	to->n_tokens = 0;
	for (size_t i = 0; i < o->login.n; i++) {
		const struct login_token *t = &o->login.of[i];
		const struct str value = secret_expose(t->value, "for requests to its hosts");
		bool to_hosts = login_goes_to_hosts(t);

		bind_token(o, to, str_of(t->mark), value,
			   NW_IN_TOKENS | NW_SHOWS_CLAIMS | (to_hosts ? NW_IN_FIELDS : 0u) |
				   (login_refreshes(t) ? NW_REFRESHES : 0u));
		if (to_hosts && !to->value.n)
			to->value = value;
	}
	/* TLS to the URLs ends in the proxy also before there is a token for them */
	bound_placeholder(o->nothing);
	bind_token(o, to, STR_LIT(NW_PLACEHOLDER "that-stands-for-nothing"),
		   str_of(o->nothing + strlen(NW_PLACEHOLDER)), NW_IN_TOKENS);
}

/* Its hosts and trust are there. It is read only now, so that no older tokens replace those of an
 * answer that came meanwhile. */
static void bind_login(struct bind_one *o, struct hub_secret *to)
{
	struct gate *g = o->of->gate;
	AUTO(secret_free)
	struct secret *text = secrets_stored(g->guard.secrets, str_of(o->name), &to->err);
	struct str value = text ? secret_expose(text, "for requests to its hosts") : STR_NONE;

	if (text && (gate_secret_gave(g, str_of(o->name), value, &to->err) < 0 ||
		     login_read(&o->login, value, &to->err) < 0))
		return;
	if (text)
		to->err = (struct err)ERR_INIT;
	bind_tokens(o, to);
}

static int bind_urls(struct bind_one *o, const struct config_secret *s, struct hub_secret *to,
		     struct err *e)
{
	if (network_login_urls(s, o->urls, &to->n_exchanges, e) < 0)
		return -1;
	to->exchanges = o->urls;
	for (size_t i = 0; i < to->n_exchanges; i++) {
		o->url_hosts[i] = (struct net_rule){ .kind = NET_RULE_NAME,
						     .port = o->urls[i].port };
		memcpy(o->url_hosts[i].host, o->urls[i].host, sizeof(o->urls[i].host));
	}
	o->has_login = true;
	return 0;
}

/* ---- the end ------------------------------------------------------------------------------- */

static void bind_end(struct bind_read *r)
{
	for (size_t i = 0; i < r->n; i++) {
		if (r->all[i].has_login && !r->p[i].err.code)
			bind_login(&r->all[i], &r->p[i]);
	}
	r->on_read(r->arg, r->p);
	for (size_t i = 0; i < r->n; i++)
		bind_one_fini(&r->all[i]);
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
	if (s->has_login) /* is read at the end */
		return bind_urls(o, s, to, e) < 0 ? -1 : 0;
	return secrets_read_start(g->guard.secrets, g->loop, &name, 1, bind_on_read, o, e) ? 1 : -1;
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
		if (bind_begin(o, &r->p[i], who, by_operator, &r->p[i].err) > 0)
			r->waiting++;
	}
}

/* ---- new tokens ---------------------------------------------------------------------------- */

static int bind_store(struct gate *g, const struct login *l, struct str name, struct err *e)
{
	autowipe struct buf text = BUF_INIT(SECRETS_MAX);

	if (!buf_reserve(&text, text.max, e) || login_write(l, &text, e) < 0)
		return -1;
	return secrets_set(g->guard.secrets, name, buf_str(&text), e);
}

/* Those of the answer, and what the log-in had before. */
static int bind_keep_all(struct gate *g, struct bind_one *o, const struct config_secret *s,
			 bool begins, struct str body, struct buf *ret_body, struct err *e)
{
	struct str name = str_of(o->name);
	AUTO(secret_free) struct secret *text = secrets_stored(g->guard.secrets, name, e);
	size_t taken;

	if (!text && !(begins && e->code == ERR_SECRET_NOT_FOUND))
		return -1;
	if (text && login_read(&o->login, secret_expose(text, "renewed"), e) < 0)
		return -1;
	if (login_take(&o->login, &s->login, body, ret_body, &taken, e) < 0)
		return -1;
	if (taken == 0)
		return 0;
	if (gate_login_gave(g, &o->login, name, e) < 0 || bind_store(g, &o->login, name, e) < 0)
		return -1;
	log_info("log-in %s has new tokens", o->name);
	return 1;
}

static int bind_keep(void *data, struct str name, bool begins, struct str body,
		     struct hub_secret *ret_now, struct buf *ret_body, struct err *e)
{
	struct gate *g = data;
	const struct config_secret *s = config_secret_bound(config_file(g->config), name);
	struct bind_one *o = calloc(1, sizeof(*o));
	int rc;

	*ret_now = (struct hub_secret){ .err = ERR_INIT };
	if (g->kept)
		bind_one_fini(g->kept);
	free(g->kept);
	g->kept = o;
	if (!o)
		return err_set(e, ERR_LIMIT, "out of memory");
	*o = (struct bind_one){ .trust = BUF_INIT(NW_SECRET_TRUST_MAX) };
	snprintf(o->name, sizeof(o->name), "%.*s", STR_ARG(name));
	if (!s || !s->has_login)
		return err_set(e, ERR_SECRET_NOT_FOUND, "there is no log-in %s", o->name);
	if (network_secret_hosts(s, o->hosts, &ret_now->n_hosts, e) < 0 ||
	    (s->ca.p && bind_trust(o, s->ca, e) < 0) || bind_urls(o, s, ret_now, e) < 0)
		return -1;
	ret_now->hosts = o->hosts;
	ret_now->trust = buf_str(&o->trust);
	rc = bind_keep_all(g, o, s, begins, body, ret_body, e);
	if (rc > 0)
		bind_tokens(o, ret_now);
	return rc < 0 ? -1 : 0;
}

void gate_bind_close(struct gate *g)
{
	if (g->kept)
		bind_one_fini(g->kept);
	free(take_ptr(g->kept));
}

void gate_bind_open(struct gate *g)
{
	g->to_hosts = (struct hub_secrets){ bind_read_start, bind_keep, g };
	if (g->hub)
		hub_sandboxes_secrets_from(hub_sandboxes(g->hub), &g->to_hosts);
}
