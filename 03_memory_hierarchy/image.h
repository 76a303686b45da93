// image.h - pictures as PGM and PPM files (P5 and P6, 8 bits a value): read, write, and make one.
//
// The format: "P6", width, height, largest value, separated by white space and "# comments", then
// one white-space character, then the rows from the top, 3 bytes a pixel (P5: 1 byte).
#ifndef MEMORY_HIERARCHY_IMAGE_H
#define MEMORY_HIERARCHY_IMAGE_H

#include "../common/lesson.h"
#include "../common/output.h"
#include <ctype.h>

struct image {
    int width, height;
    uchar4 *pixels; // red, green, blue, 255
};

enum { IMAGE_MAX_SIDE = 16384 }; // 1 GiB of pixels; more is a damaged header

static inline struct image image_new(int width, int height)
{
    size_t bytes = (size_t)width * (size_t)height * sizeof(uchar4);
    struct image picture = {width, height, (uchar4 *)host_malloc(bytes)};
    return picture;
}

// The next whole number of the header, at most `most`; -1 when there is none.
static inline int image_number(FILE *f, int most)
{
    int c = fgetc(f), value = -1;
    while (c == '#' || isspace(c)) { // a comment goes to the end of its line
        while (c == '#' && (c = fgetc(f)) != EOF)
            c = c == '\n' ? ' ' : '#';
        if (c != EOF)
            c = fgetc(f);
    }
    for (; c >= '0' && c <= '9' && value <= most; c = fgetc(f))
        value = (value < 0 ? 0 : value) * 10 + c - '0';
    // what follows the number is the one white-space character before the pixels
    return value <= most && isspace(c) ? value : -1;
}

// Reads the file or ends the program with one line that says what is wrong with it.
static inline struct image image_read(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        lesson_exit(EXIT_FAILED, "--image %s: %s", path, strerror(errno));
    int magic = fgetc(f), kind = fgetc(f);
    if (ferror(f)) // a folder can be opened, but not read
        lesson_exit(EXIT_FAILED, "--image %s: %s", path, strerror(errno));
    if (magic != 'P' || (kind != '5' && kind != '6'))
        lesson_exit(EXIT_FAILED, "--image %s: this is no P5 (PGM) or P6 (PPM) file", path);
    int width = image_number(f, IMAGE_MAX_SIDE), height = image_number(f, IMAGE_MAX_SIDE);
    int largest = image_number(f, 65535), channels = kind == '6' ? 3 : 1;
    if (width < 1 || height < 1)
        lesson_exit(EXIT_FAILED, "--image %s: the header names no width and height from 1 to %d",
                    path, IMAGE_MAX_SIDE);
    if (largest < 1 || largest > 255)
        lesson_exit(EXIT_FAILED, "--image %s: the largest value must be from 1 to 255 (8 bits)",
                    path);
    struct image picture = image_new(width, height);
    for (size_t i = 0; i < (size_t)width * (size_t)height; i++) {
        int value[3] = {0, 0, 0};
        for (int c = 0; c < channels; c++)
            value[c] = fgetc(f);
        if (value[channels - 1] == EOF)
            lesson_exit(EXIT_FAILED, "--image %s: truncated: %zu of %d x %d pixels are there", path,
                        i, width, height);
        for (int c = 0; c < channels; c++)
            value[c] = value[c] > largest ? 255 : value[c] * 255 / largest;
        for (int c = channels; c < 3; c++)
            value[c] = value[0]; // grey
        picture.pixels[i] = make_uchar4((unsigned char)value[0], (unsigned char)value[1],
                                        (unsigned char)value[2], 255);
    }
    fclose(f);
    return picture;
}

static inline void image_write(const char *path, const struct image *picture)
{
    struct output_file file;
    if (!output_open(&file, path))
        lesson_exit(EXIT_FAILED, "--out %s: %s", path, strerror(errno));
    fprintf(file.stream, "P6\n%d %d\n255\n", picture->width, picture->height);
    for (size_t i = 0; i < (size_t)picture->width * (size_t)picture->height; i++) {
        const unsigned char rgb[3] = {picture->pixels[i].x, picture->pixels[i].y,
                                      picture->pixels[i].z};
        fwrite(rgb, 1, 3, file.stream);
    }
    if (!output_commit(&file))
        lesson_exit(EXIT_FAILED, "--out %s: could not be written", path);
}

// A picture whose orientation and borders can be told: a red and blue slope, a green checkerboard,
// a white frame with one black corner.
static inline struct image image_make(int side)
{
    struct image picture = image_new(side, side);
    int field = side / 8 > 0 ? side / 8 : 1, frame = side / 32;
    for (int y = 0; y < side; y++)
        for (int x = 0; x < side; x++) {
            unsigned char red = (unsigned char)(x * 255 / side),
                          blue = (unsigned char)(y * 255 / side);
            unsigned char green = (x / field + y / field) % 2 ? 200 : 40;
            uchar4 pixel = make_uchar4(red, green, blue, 255);
            if (x < frame || y < frame || x >= side - frame || y >= side - frame)
                pixel = make_uchar4(255, 255, 255, 255);
            if (x < field && y < field)
                pixel = make_uchar4(0, 0, 0, 255);
            picture.pixels[(size_t)y * (size_t)side + (size_t)x] = pixel;
        }
    return picture;
}

#endif
