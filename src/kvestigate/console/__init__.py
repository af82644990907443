"""The console: the catalog of operations in a browser, beside the command line and the gateway.

Pages are made on the server and work without JavaScript: links and forms. With JavaScript they are
live. The browser is not trusted: `gate` lets nobody in who was not given the URL by the operator,
and `markup` makes it impossible to write text of a cluster unescaped. The console has no second
list of anything: what may be done, and what has to be confirmed, is what operations declare.
"""
