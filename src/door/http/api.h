#pragma once
/*
 * REST under /v1 and /api, and Connect-JSON under /sandbox.v1.Sandbox, over operations. A route is
 * a row: its tables decode the request, print the document /v1/openapi.json, and encode the answer.
 * A resource is a file with its rows and the functions that run them; door/rest/routes.c lists the
 * files.
 */
#include "call/call.h"
#include "http/server/server.h"

struct api;

/* Three prefixes: /v1 and Connect for programs, /api for people and their pages. */
enum api_kind { API_REST, API_CONNECT, API_PEOPLE };

/* What serves clients of mitos besides (door/rest/mitos.h). */
struct mitos;

/* Borrows ops and mitos until api_free(); mitos: NULL where nobody serves its clients. */
struct api *api_new(uv_loop_t *loop, struct ops *ops, enum api_kind kind, struct mitos *mitos,
		    struct err *e) MUST_USE;

/* The server goes down: streams that wait for nothing but news end. */
void api_drain(struct api *a);

/* After the door is closed: no request is in flight. NULL-safe. */
void api_free(struct api *a);

/* Borrowed from a. */
struct http_routes api_routes(const struct api *a);
