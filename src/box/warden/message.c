#include "box/warden/message.h"

#include <string.h>

#include "base/mem.h"

static bool create_is_sound(const void *msg, size_t n)
{
	const struct wm_create *m = msg;
	const char *at = (const char *)(m + 1), *end = (const char *)msg + n;

	if (!memchr(m->image, 0, sizeof(m->image)) || m->n_mounts > WIRE_MOUNTS_MAX)
		return false;
	for (uint32_t i = 0; at && i < m->n_mounts; i++) {
		const char *host, *guest;
		struct wm_mount mount;

		at = message_mount(at, end, &mount, &host, &guest);
	}
	return at == end;
}

static bool usage_is_sound(const void *msg, size_t n)
{
	const struct wm_usage *m = msg;

	return n == sizeof(*m) && m->n <= WIRE_USAGE_MAX;
}

static bool socket_is_sound(const void *msg, size_t n)
{
	const struct wm_socket *m = msg;

	return n == sizeof(*m) && m->n <= WIRE_SOCKETS_MAX;
}

static bool attach_is_sound(const void *msg, size_t n)
{
	const struct wm_attach *m = msg;

	return n == sizeof(*m) && m->folder[0] == '/' && memchr(m->folder, 0, sizeof(m->folder));
}

static bool look_is_sound(const void *msg, size_t n)
{
	const struct wm_look *m = msg;

	return n == sizeof(*m) && m->since_ms > 0 && m->folder[0] == '/' &&
	       memchr(m->folder, 0, sizeof(m->folder));
}

/* A message may be longer than its struct only if something follows it. */
static const struct shape {
	uint32_t type;
	size_t size;
	bool more;
	bool (*is_sound)(const void *msg, size_t n); /* NULL: any content is valid */
} shapes[] = {
	{ WM_CREATE, sizeof(struct wm_create), true, create_is_sound },
	{ WM_FORK, sizeof(struct wm_fork), false, NULL },
	{ WM_WRITE, sizeof(struct wm_write), false, NULL },
	{ WM_PAUSE, sizeof(struct wm_pause), false, NULL },
	{ WM_DESTROY, sizeof(struct wm_destroy), false, NULL },
	{ WM_USAGE, sizeof(struct wm_usage), false, usage_is_sound },
	{ WM_SOCKET, sizeof(struct wm_socket), false, socket_is_sound },
	{ WM_SLEEP, sizeof(struct wm_sleep), false, NULL },
	{ WM_WAKE, sizeof(struct wm_sleep), false, NULL },
	{ WM_HURRY, sizeof(struct wm_sleep), false, NULL },
	{ WM_RECORD, sizeof(struct wm_record), true, NULL },
	{ WM_END, sizeof(struct wm_head), false, NULL },
	{ WM_ATTACH, sizeof(struct wm_attach), false, attach_is_sound },
	{ WM_LOOK, sizeof(struct wm_look), false, look_is_sound },
};

int message_check(const void *msg, size_t n, struct err *e)
{
	const struct wm_head *h = msg;

	for (size_t i = 0; n >= sizeof(*h) && i < ARRAY_LEN(shapes); i++) {
		const struct shape *s = &shapes[i];

		if (s->type != h->type)
			continue;
		if (n < s->size || (n > s->size && !s->more) ||
		    (s->is_sound && !s->is_sound(msg, n)))
			return err_set(e, ERR_BUG,
				       "a message to the warden that is not as it should be");
		return 0;
	}
	return err_set(e, ERR_BUG, "a message that the warden does not know");
}

const char *message_mount(const char *at, const char *end, struct wm_mount *ret,
			  const char **ret_host, const char **ret_guest)
{
	size_t left = (size_t)(end - at);

	if (left < sizeof(*ret))
		return NULL;
	memcpy(ret, at, sizeof(*ret));
	at += sizeof(*ret);
	left -= sizeof(*ret);
	if (!ret->host_len || !ret->guest_len || ret->host_len > 4096 || ret->guest_len > 4096 ||
	    left < (size_t)ret->host_len + ret->guest_len || at[ret->host_len - 1] ||
	    at[ret->host_len + ret->guest_len - 1])
		return NULL;
	*ret_host = at;
	*ret_guest = at + ret->host_len;
	return *ret_guest + ret->guest_len;
}

bool message_is_hello(const void *msg, size_t n, const char *build)
{
	const struct wm_hello *m = msg;

	return n == sizeof(*m) && m->h.type == WM_HELLO && m->version == WIRE_VERSION &&
	       strncmp(m->build, build, sizeof(m->build)) == 0 &&
	       memchr(m->allow, 0, sizeof(m->allow));
}
