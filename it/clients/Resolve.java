import java.util.Hashtable;
import javax.naming.NamingException;
import javax.naming.directory.Attribute;
import javax.naming.directory.InitialDirContext;

/** Prints the addresses of a name, one a line, as Java's own DNS client finds them. */
public class Resolve {
    public static void main(String[] args) throws NamingException {
        Hashtable<String, String> environment = new Hashtable<>();
        environment.put("java.naming.factory.initial", "com.sun.jndi.dns.DnsContextFactory");
        InitialDirContext context = new InitialDirContext(environment);
        String[] types = {"A", "AAAA"};
        for (String type : types) {
            Attribute found = context.getAttributes(args[0], new String[] {type}).get(type);
            for (int at = 0; found != null && at < found.size(); at++) {
                System.out.println(found.get(at));
            }
        }
    }
}
