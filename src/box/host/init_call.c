/* Requests to the init of a sandbox, each with one answer. */
#include <fcntl.h>

#include "base/log.h"
#include "box/host/internal.h"

int init_call_send(struct init_call *c, struct im_head *h, size_t n, struct err *e)
{
	return init_call_send_fd(c, h, n, -1, e);
}

int init_call_send_fd(struct init_call *c, struct im_head *h, size_t n, int fd, struct err *e)
{
	h->id = ++c->sb->last_id;
	if (sandbox_send(c->sb, h, n, &fd, fd >= 0 ? 1 : 0, e) < 0)
		return -1;
	c->id = h->id;
	c->next = c->sb->calls;
	c->sb->calls = c;
	return 0;
}

void init_call_answered(struct sandbox *sb, const struct im_head *answer, size_t n, int *fd,
			bool fd_lost)
{
	struct init_call **at = &sb->calls, *c;

	while (*at && (*at)->id != answer->id)
		at = &(*at)->next;
	c = *at;
	if (!c)
		return;
	if (answer->type != c->answer || n < c->answer_size) {
		log_warn("the init of sandbox %s answered something else (%u)", sb->id,
			 answer->type);
		box_lose(sb);
		return;
	}
	*at = c->next;
	c->fd_lost = fd_lost;
	c->on_reply(c, answer, n, take_fd(fd), NULL);
}

int init_call_no_fd(const struct init_call *c, struct err *e)
{
	if (c->fd_lost)
		return err_set(e, ERR_LIMIT, "too many files are open");
	return err_set(e, ERR_GUEST, "the sandbox's first process gave no file");
}

void init_call_end_all(struct sandbox *sb, const struct err *err)
{
	while (sb->calls) {
		struct init_call *c = sb->calls;

		sb->calls = c->next;
		c->on_reply(c, NULL, 0, -1, err);
	}
}
