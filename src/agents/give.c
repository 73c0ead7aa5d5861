/*
 * Files that go with a prompt: an image goes in the message to an agent that takes images; of each
 * other file the agent gets the address. In its sandbox that is a copy, since nothing there sees
 * the folder of the hub.
 */
#include <limits.h>
#include <stdlib.h>

#include "agents/internal.h"
#include "agents/store/attachment.h"
#include "base/base64.h"
#include "base/log.h"

#define GIVE_FOLDER "/tmp/holt-files/"

struct give {
	struct agent *of; /* who wants the file that is written now; NULL: none is */
	bool dropped; /* nobody does any more */
	char ids[QUEUE_FILES][ATTACHMENT_ID + 1];
	size_t n, at; /* at: the next one */
	struct acp_block blocks[QUEUE_FILES];
	size_t n_blocks;
	struct arena arena; /* what they borrow */
	struct buf bytes; /* of the file that is written now */
};

enum { GIVE_MAX = 10 << 20 };

struct give *give_new(const struct field_strs *ids, struct err *e)
{
	struct give *g = calloc(1, sizeof(*g));

	if (!g)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	arena_init(&g->arena, GIVE_MAX);
	g->bytes = BUF_INIT(ATTACHMENT_MAX);
	for (size_t i = 0; i < ids->n && g->n < QUEUE_FILES; i++) {
		if (ids->p[i].n > ATTACHMENT_ID)
			continue;
		memcpy(g->ids[g->n++], ids->p[i].p, ids->p[i].n);
	}
	return g;
}

void give_free(struct give *g)
{
	if (!g)
		return;
	g->dropped = g->of;
	if (g->dropped)
		return;
	buf_fini(&g->bytes);
	arena_fini(&g->arena);
	free(g);
}

const struct acp_block *give_blocks(const struct give *g, size_t *ret_n)
{
	*ret_n = g->n_blocks;
	return g->blocks;
}

static int give_image(struct give *g, const struct attachment *f, struct err *e)
{
	autobuf struct buf text = BUF_INIT(GIVE_MAX);
	struct str kept;

	if (base64_encode(&text, buf_str(&g->bytes), e) < 0)
		return -1;
	kept = (struct str){ arena_dup(&g->arena, buf_str(&text), e), text.n };
	if (!kept.p)
		return -1;
	g->blocks[g->n_blocks++] = (struct acp_block){ .image = kept, .type = str_of(f->type) };
	return 0;
}

/* path: where the agent finds it. URIs have no other bytes than letters of RFC 3986. */
static int give_link(struct give *g, const struct attachment *f, const char *path, struct err *e)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789-._~/";
	autobuf struct buf uri = BUF_INIT(3 * PATH_MAX);
	struct acp_block b = { .type = str_of(f->type), .size = f->size };

	if (buf_addf(&uri, e, "file://") < 0)
		return -1;
	for (const char *at = path; *at; at++) {
		if (buf_addf(&uri, e, strchr(plain, *at) ? "%c" : "%%%02X", (unsigned char)*at) < 0)
			return -1;
	}
	b.name = (struct str){ arena_dup(&g->arena, str_of(f->name), e), strlen(f->name) };
	b.uri = (struct str){ arena_dup(&g->arena, buf_str(&uri), e), uri.n };
	if (!b.name.p || !b.uri.p)
		return -1;
	g->blocks[g->n_blocks++] = b;
	return 0;
}

static void give_next(struct agent *a);

static void give_on_written(void *arg, const struct err *err)
{
	struct give *g = arg;
	struct agent *a = g->of;

	g->of = NULL;
	if (g->dropped)
		give_free(g);
	else if (err)
		agent_not_given(a, err);
	else if (!a->ending)
		give_next(a);
	agent_on_job(a);
}

/* 1: it is being written. */
static int give_file(struct agent *a, struct give *g, struct err *e)
{
	static const struct file_write_opts opts = { .make_parents = true };
	char file[256], path[PATH_MAX];
	struct attachment f;

	g->bytes.n = 0;
	if (attachment_read(conversation_folder(a->conversation), str_of(g->ids[g->at++]), &f,
			    &g->bytes, e) < 0)
		return e->code == ERR_PATH_NOT_FOUND ? 0 : -1; /* it was removed */
	if (f.image && acp_takes_images(a->acp))
		return give_image(g, &f, e);
	attachment_file(&f, file);
	if (!a->place.sandbox) {
		snprintf(path, sizeof(path), "%s/%s/" ATTACHMENTS_FOLDER "/%s",
			 conversations_path(a->all->conversations),
			 conversation_id(a->conversation), file);
		return give_link(g, &f, path, e);
	}
	snprintf(path, sizeof(path), GIVE_FOLDER "%s", file);
	if (give_link(g, &f, path, e) < 0)
		return -1;
	g->of = a;
	a->jobs++;
	file_write_start(a->place.sandbox, str_of(path), buf_str(&g->bytes), &opts, give_on_written,
			 g);
	return 1;
}

static void give_next(struct agent *a)
{
	struct give *g = a->give;
	struct err e = ERR_INIT;
	int is = 0;

	while (is == 0 && g->at < g->n)
		is = give_file(a, g, &e);
	if (is < 0)
		agent_not_given(a, &e);
	else if (is == 0)
		agent_given(a);
}

void give_start(struct agent *a)
{
	give_next(a);
}
