// Five packets, printed and counted.   causeway run conf/hello.click

InfiniteSource(LIMIT 5, STOP true)   // makes five packets, then stops the router
    -> Print(hello)                  // prints the first bytes of each
    -> c :: Counter                  // counts them; its name is c
    -> Discard;                      // throws them away
