/*
 * notice - what holds in this cell, written for the agent: /etc/warden/notice inside.
 *
 * An agent that meets "permission denied" without a word tries to get around it. This file says once
 * what is writable, which hosts are granted and how a person can grant more.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "monitor/prepare.h"

#define AW_NOTICE_MAX (64 * 1024)

int aw_notice_write(const struct aw_prepared *prepared, struct aw_buf *out, struct aw_error *err);
