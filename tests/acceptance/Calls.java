import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

/** Sends requests as Java's own client does by default, with an offer of HTTP/2: for each, a method, a URL and a body. */
public class Calls {
    public static void main(String[] words) throws Exception {
        for (int at = 0; at < words.length; at += 3) {
            var client = HttpClient.newHttpClient();  // a new one makes its offer again
            var body = words[at + 2].isEmpty()
                    ? HttpRequest.BodyPublishers.noBody() : HttpRequest.BodyPublishers.ofString(words[at + 2]);
            var request = HttpRequest.newBuilder(URI.create(words[at + 1]))
                    .header("Content-Type", "application/json").method(words[at], body).build();
            var answer = client.send(request, HttpResponse.BodyHandlers.ofString());
            System.out.println(answer.statusCode() + " " + answer.body().replace("\n", " "));
        }
    }
}
