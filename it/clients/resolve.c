/* Prints the addresses of a name, one a line, as the C library finds them. */
#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

int main(int argc, char **argv) {
    struct addrinfo hints, *found, *one;
    if (argc != 2)
        return 2;
    memset(&hints, 0, sizeof hints);
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    int error = getaddrinfo(argv[1], NULL, &hints, &found);
    if (error) {
        fprintf(stderr, "%s: %s\n", argv[1], gai_strerror(error));
        return 1;
    }
    for (one = found; one; one = one->ai_next) {
        char text[INET6_ADDRSTRLEN];
        const void *address = one->ai_family == AF_INET
                                  ? (const void *)&((struct sockaddr_in *)one->ai_addr)->sin_addr
                                  : (const void *)&((struct sockaddr_in6 *)one->ai_addr)->sin6_addr;
        puts(inet_ntop(one->ai_family, address, text, sizeof text));
    }
    return 0;
}
