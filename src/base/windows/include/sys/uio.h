#pragma once
struct iovec {
	void *iov_base;
	size_t iov_len;
};
ssize_t writev(int fd, const struct iovec *parts, int count);
