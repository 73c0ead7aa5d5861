#pragma once
/* Between the files of questions. */
#include "ask/question.h"

/* ---- check.c: what may be asked and answered ------------------------------------------------ */

/* ERR_INVALID unless the kind of question can be shown and answered like this. */
int question_check(enum question_kind kind, const struct question_spec *s, struct err *e) MUST_USE;

/* Fills the label in. ERR_INVALID unless it is an answer to this. */
int question_check_reply(const struct question *q, struct question_reply *r,
			 struct err *e) MUST_USE;
