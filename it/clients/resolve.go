// Prints the addresses of a name, one a line, as Go's own resolver finds them.
package main

import (
	"fmt"
	"net"
	"os"
)

func main() {
	net.DefaultResolver.PreferGo = true
	addresses, err := net.LookupHost(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for _, address := range addresses {
		fmt.Println(address)
	}
}
