#pragma once
#define DT_UNKNOWN 0
#define DT_FIFO 1
#define DT_DIR 4
#define DT_REG 8
#define DT_LNK 10
#define DT_SOCK 12
#define IFTODT(mode) (((mode)&0xF000) >> 12)
struct dirent {
	uint64_t d_ino;
	unsigned char d_type;
	char d_name[256 * 3 + 1];
};
typedef struct system_directory DIR;
DIR *fdopendir(int fd);
DIR *opendir(const char *path);
struct dirent *readdir(DIR *directory);
int closedir(DIR *directory);
int dirfd(DIR *directory);

/* As many entries as there is room for; 0 at the end. */
struct dirent64 {
	uint64_t d_ino;
	unsigned short d_reclen;
	unsigned char d_type;
	char d_name[256 * 3 + 1];
};
ssize_t getdents64(int fd, void *buffer, size_t size);
